# What the stories share. A story.sh reads this file; its argument is the folder of the example's own copy:
#   venv/bin/python -m examples copy NAME FOLDER
# It needs `pulumi` on PATH with a backend, and the kubeconfig contexts that the copy names. It shows each command.
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: $0 FOLDER, a copy of the example: venv/bin/python -m examples copy NAME FOLDER" >&2; exit 2; }
folder=$(realpath "$1")
[ -f "$folder/Pulumi.yaml" ] || { echo "$0: folder must hold a Pulumi project (got $1)." >&2; exit 2; }
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH="$PWD/venv/bin:$PATH"
notes=$(mktemp -d)
running=()
trap 'for pid in ${running[@]+"${running[@]}"}; do stop "$pid"; done; rm -rf "$notes"' EXIT

stop() { # PID: end it. A signal from before its program has begun may be lost: it is sent again after a while
  while kill "$1" 2> /dev/null; do
    for _ in {1..50}; do
      kill -0 "$1" 2> /dev/null || break 2
      sleep 0.1
    done
  done
  wait "$1" || true
}

chapter() { # TEXT
  printf '\n== %s\n' "$*"
}

run() { # COMMAND...: show it and run it
  printf '\n$ %s\n' "$*"
  "$@"
}

begin() { # COMMAND...: show it and run it in the background, until `end`
  printf '\n$ %s &\n' "$*"
  "$@" &
  running+=("$!")
}

end() { # end what was begun last
  local pid=${running[-1]}
  unset 'running[-1]'
  printf '\n$ kill %%%s && wait %%%s\n' "$((${#running[@]} + 1))" "$((${#running[@]} + 1))"
  kill "$pid"
  wait "$pid"
}

up() { # STACK...: bring the stacks of the copy up
  for stack in "$@"; do
    run pulumi -C "$folder" stack select "$stack" --create
    run pulumi -C "$folder" up --stack "$stack" --yes --skip-preview
  done
}

ops() { # COMMAND...: show and run a command of ops for the stacks of the copy
  run python -m ops "$@" -C "$folder"
}

wait_for() { # SECONDS WHAT COMMAND...: repeat a command until it succeeds
  local end=$((SECONDS + $1)) what=$2 reported=$SECONDS
  shift 2
  printf '\n$ until %s; do sleep 1; done\n' "$*"
  until "$@" > "$notes/wait" 2>&1; do
    if [ "$SECONDS" -ge "$end" ]; then
      echo "$what: must come in time. The last answer: $(tail -n 5 "$notes/wait")" >&2
      exit 1
    fi
    if [ $((SECONDS - reported)) -ge 10 ]; then reported=$SECONDS && echo "waiting for $what"; fi
    sleep 1
  done
}

ids() { # FILE...: the ids of the records in files of --keys-out, each once
  cut -f 3 "$@" | sort -u
}

lost() { # SENT READ...: how many records were sent and are in none of the other files
  local sent=$1
  shift
  comm -23 <(ids "$sent") <(ids "$@") | wc -l
}

again() { # READ...: how many records were read once more than needed, in all files together
  cut -f 3 "$@" | sort | uniq -d | wc -l
}

promise() { # WHAT GOT TEST WANTED: print what was seen; end the story if it is not what was promised
  local -A words=([-eq]=exactly [-le]="at most" [-ge]="at least")
  if [ "$2" "$3" "$4" ]; then
    printf '%-60s %s\n' "$1" "$2"
  else
    printf '%s: must be %s %s (got %s). The story does not hold.\n' "$1" "${words[$3]}" "$4" "$2" >&2
    exit 1
  fi
}
