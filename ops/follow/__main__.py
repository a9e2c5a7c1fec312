"""`python -m ops.follow`: the command `ops follow` alone, as its image starts it."""

import typer

from ops.follow.command import command

if __name__ == "__main__":
    typer.run(command)
