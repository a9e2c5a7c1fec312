#!/usr/bin/env bash
# The consumer stops in us, then the producer; both go on in europe. Nothing is lost or skipped, and few records come
# again: the mirror follows the consumer closely.
. "$(dirname "$0")/../story.sh"
app=(--user my-app --topic my-topic -C "$folder")

chapter "Both sites come up, us first"
up us europe

chapter "A producer and a consumer in us; who watches in europe sees the same records"
begin python -m ops produce --stack us "${app[@]}" --forever --rate 20 --keys-out "$notes/sent"
begin python -m ops consume --stack us "${app[@]}" --group my-app --forever --keys-out "$notes/read-us"
run python -m ops consume --stack europe "${app[@]}" --group watcher --wait 120 --max 200

chapter "The consumer stops, and the producer a little later"
end
run python -m ops consume --stack europe "${app[@]}" --group watcher --wait 120 --max 100
end
sent=$(wc -l < "$notes/sent")
run python -m ops consume --stack europe "${app[@]}" --group watcher --wait 120 --max $((sent - 300))

chapter "Where the group stands on both sides"
wait_for 60 "the group's offsets in europe" python -m ops offsets export --stack europe --group my-app -C "$folder" --out "$notes/offsets"
run python -m ops offsets show --stack europe --group my-app -C "$folder"

chapter "Europe becomes active; the consumer goes on there, and a producer"
run python -m ops failover --to europe --yes --report-dir "$folder/reports/failover" -C "$folder"
run python -m ops consume --stack europe "${app[@]}" --group my-app --until-end --keys-out "$notes/read-europe"
run python -m ops produce --stack europe "${app[@]}" --count 50 --keys-out "$notes/sent-europe"
run python -m ops consume --stack europe "${app[@]}" --group my-app --max 50 --keys-out "$notes/read-later"

chapter "What came of it"
left=$((sent - $(ids "$notes/read-us" | wc -l)))
promise "records sent in us" "$sent" -ge 300
promise "of these lost or skipped" "$(lost "$notes/sent" "$notes/read-us" "$notes/read-europe")" -eq 0
promise "of these read twice, of $left that were left to read" "$(again "$notes/read-us" "$notes/read-europe")" -le "$left"
promise "of 50 sent in europe lost" "$(lost "$notes/sent-europe" "$notes/read-later")" -eq 0
