#!/usr/bin/env bash
# An application keeps its positions itself. It reads a part in us, goes on in europe, and translates its positions by
# the mirror's offset syncs: nothing is lost and nothing is read twice, though nobody sets the offsets of a group.
. "$(dirname "$0")/../story.sh"
client=(python -m examples.us-europe-own-offsets.client --positions "$notes/positions.json" -C "$folder")

chapter "Both sites come up, us first"
up us europe

chapter "The application reads what is there; then 400 records go in, and it reads 150 of them"
run "${client[@]}" --stack us --keys-out "$notes/read-before"
run python -m ops produce --stack us --user us-app --topic my-topic --count 400 --keys-out "$notes/sent" -C "$folder"
run "${client[@]}" --stack us --max 150 --keys-out "$notes/read-us"
run cat "$notes/positions.json"

chapter "All have arrived in europe, and no group has an offset there"
copied=(python -m ops consume --stack europe --user europe-app --topic kafka-us.my-topic --group my-app --no-commit -C "$folder")
wait_for 300 "all records in europe" "${copied[@]}" --max $(($(wc -l < "$notes/read-before") + 400))

chapter "The application goes on in europe"
run "${client[@]}" --stack europe --keys-out "$notes/read-europe"

chapter "What came of it"
promise "records read in us" "$(ids "$notes/read-us" | wc -l)" -eq 150
promise "records read in europe" "$(ids "$notes/read-europe" | wc -l)" -eq 250
promise "records lost or skipped" "$(lost "$notes/sent" "$notes/read-us" "$notes/read-europe")" -eq 0
promise "records read twice" "$(again "$notes/read-us" "$notes/read-europe")" -eq 0
