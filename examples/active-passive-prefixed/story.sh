#!/usr/bin/env bash
# 100 products go in and the storefront has read 20 of them when the source is left: the other 80, and no other, are
# read from es-src.products.
. "$(dirname "$0")/../story.sh"

chapter "Source and target come up, in one namespace"
up source target

chapter "100 products in, 20 read at the source"
run python -m ops produce --stack source --user catalog --topic products --kind products --count 100 \
  --keys-out "$notes/sent" -C "$folder"
run python -m ops consume --stack source --user light-es-storefront --topic products --group storefront --max 20 \
  --keys-out "$notes/read-source" -C "$folder"

chapter "The target becomes active"
run python -m ops failover --to target --exact --yes --report-dir "$folder/reports/failover" -C "$folder"

chapter "The rest, from the remote topic"
run python -m ops consume --stack target --user storefront --topic es-src.products --group storefront --until-end \
  --print --keys-out "$notes/read-target" -C "$folder"

chapter "What came of it"
promise "products read at the source" "$(ids "$notes/read-source" | wc -l)" -eq 20
promise "products read from es-src.products" "$(ids "$notes/read-target" | wc -l)" -eq 80
promise "products lost or skipped" "$(lost "$notes/sent" "$notes/read-source" "$notes/read-target")" -eq 0
promise "products read twice" "$(again "$notes/read-source" "$notes/read-target")" -eq 0
