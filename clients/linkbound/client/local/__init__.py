"""The backend that answers in this process. This package alone reaches the services, and only when they are asked."""
