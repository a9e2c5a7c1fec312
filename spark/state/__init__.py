"""What earlier runs have verified: where it is kept, whether it still holds, and from where a run may go on."""
