#!/bin/sh
# Makes editor.js and charts.js again, and htmx.js, LICENCES.txt and CHECKSUMS beside them; needs npm and its registry.
# Run it anywhere; it works in a temporary folder and writes into the folder above.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/package.json" "$here/package-lock.json" "$here/editor_entry.js" "$here/charts_entry.js" "$here/licences.mjs" "$work"
cd "$work"
npm ci --no-audit --no-fund --ignore-scripts
bundle() {
  npx esbuild "$1_entry.js" --bundle --minify --format=iife --global-name="$2" --target=es2022 \
    --legal-comments=none --metafile="$1.meta.json" --outfile="$1.js"
}
bundle editor DiscreetEditor
bundle charts DiscreetCharts
cp node_modules/htmx.org/dist/htmx.min.js htmx.js
node licences.mjs editor.meta.json charts.meta.json > LICENCES.txt
cp htmx.js editor.js charts.js LICENCES.txt "$here/.."
cd "$here/.." && sha256sum htmx.js editor.js charts.js LICENCES.txt > CHECKSUMS
