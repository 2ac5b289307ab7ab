#!/bin/sh
# Runs examples/shop twice in a fresh folder, then once with bad data, and shows what each run changed.
set -eu
cd "$(dirname "$0")/.."
rm -rf demo
cp -R examples/shop demo
cd demo

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
shown() { printf '\033[2m$ %s\033[0m\n' "$*"; "$@"; }

say "1. The pipeline is checked without Spark, then planned."
shown lockgate check pipeline.sql
shown lockgate plan pipeline.sql

say "2. The first day: five results become visible together."
shown lockgate run pipeline.sql --var batch=day1
shown cat out/daily.csv

say "3. The second day: REPLACE swaps files in, APPEND adds new ones, UPSERT merges by key."
shown lockgate run pipeline.sql --var batch=day2
shown cat out/daily.csv
shown find out/sales -name '*.parquet'
shown lockgate table history shop.daily
shown lockgate table show shop.daily

say "4. A day with bad data: the checks stop it, and nothing is published."
before=$(cat out/daily.csv)
if shown lockgate run pipeline.sql --var batch=broken; then
  echo "the bad batch was not stopped" >&2; exit 1
fi
[ "$before" = "$(cat out/daily.csv)" ] || { echo "out/daily.csv has changed" >&2; exit 1; }
echo "(exit code 4: out/daily.csv is byte for byte what it was)"

say "What has happened so far:"
shown lockgate runs

say "Try next:"
cat <<'NEXT'
  . .venv/bin/activate                 # puts `lockgate` on your PATH
  lockgate init my_project             # a project of your own
  cd demo && $EDITOR pipeline.sql      # change this one, then `lockgate check pipeline.sql`
  cat docs/language.md                 # the whole language
NEXT
