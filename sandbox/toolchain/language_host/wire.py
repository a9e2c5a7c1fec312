"""Settings of the gRPC connections."""

MESSAGE_SIZES = [("grpc.max_receive_message_length", 400 << 20), ("grpc.max_send_message_length", 400 << 20)]
"""The engine's own limit, 400 MiB: a stack's state can be one message."""
