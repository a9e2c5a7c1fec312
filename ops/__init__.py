"""Operations: the commands that people on call type. Everything is learnt from a stack's outputs."""
