"""Reports for people: values and tables as text, charts as Vega-Lite, findings, and HTML pages in one file.

Whatever is shown here was released before. Charts are plain dictionaries and need nothing; pictures need the extra
`discreet[report]`. Names are imported from the modules, so that a piece of text costs no chart.
"""
