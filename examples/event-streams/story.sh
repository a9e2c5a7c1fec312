#!/usr/bin/env bash
# Stores' items and products, with the fields of the Event Streams tutorials, go in at dev. They arrive at stg with
# names, types and order kept, the verification proves it, and an application reads them there.
. "$(dirname "$0")/../story.sh"

chapter "Both sites come up, dev first"
up dev stg

chapter "Items and products go in at dev"
run python -m ops produce --stack dev --user inventory-app --topic items --count 100 --keys-out "$notes/items" -C "$folder"
run python -m ops produce --stack dev --user inventory-app --topic products --kind products --count 50 \
  --keys-out "$notes/products" -C "$folder"

run python -m ops consume --stack dev --user inventory-app --topic items --group inventory --until-end -C "$folder"

chapter "The verification compares both sides, record by record, and the group's offsets"
run python -m ops verify --stack stg --report-dir "$folder/reports/verify" -C "$folder"

chapter "An application reads them at stg"
run python -m ops consume --stack stg --user inventory-app --topic items --group audit --max 100 \
  --keys-out "$notes/items-stg" -C "$folder"
run python -m ops consume --stack stg --user inventory-app --topic products --group audit --max 50 --print \
  --keys-out "$notes/products-stg" -C "$folder" 2> >(tee "$notes/printed" >&2)

chapter "What came of it"
promise "items lost" "$(lost "$notes/items" "$notes/items-stg")" -eq 0
promise "products lost" "$(lost "$notes/products" "$notes/products-stg")" -eq 0
fields='"target_temperature": [0-9.]+, "target_humidity_level": 0\.[0-9]+, "content_type": [0-9]+}$'
promise "products with the fields of the tutorials" "$(grep -cE "$fields" "$notes/printed")" -eq 50
