"""`ops offsets`: shows, translates, exports, imports and sets offsets of groups, and of applications without one."""
