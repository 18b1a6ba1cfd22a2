"""What both servers share: builder, interceptors, health, TLS."""
