"""The backend that asks a server over gRPC."""
