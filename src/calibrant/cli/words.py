"""What the help of the commands says next to their options."""

from __future__ import annotations

STATUS = """exit status:
  0   within the limit, or no limit was given
  1   certified over the limit: everyone, a group or an unlisted subgroup
  2   the data or a setting cannot be used; one line says why
  3   undecided at this sample size, or a limited check was not applicable
  70  an unexpected error: please report it
"""
ABOUT = """Audit the predicted probabilities of any classifier: how far they are off, for whom, with certified bounds.

start here:
  calibrant example                          the audit of bundled real data, with a report
  calibrant look log.parquet                 what it holds, what is in the way, and the command to run
  calibrant audit log.parquet --label y --score p --by sex,age --limit 0.02 --report audit.html
  calibrant repair log.parquet --label y --score p --out repaired.parquet --calibrator calibrator.json
  calibrant plan 0.02                        how many rows a certificate takes
  calibrant accept answers.csv --label right --score confidence --risk 0.02     what may pass unseen
  calibrant compare log.parquet --label y --score old,new --by sex              is the new one no worse?

for programs that act for people: calibrant guide

one question alone, with every setting that Python has:
  calibrant measure --help                   estimates, such as: calibrant measure ece log.parquet --label y --score p
  calibrant detect --help                    tests
  calibrant diagnose --help                  curves and tables of where, and for whom
"""
GUIDE = "How to read a verdict, and what never to claim: the text of AGENTS.md, as Markdown."
GUIDE_STATUS = """exit status:
  0   it is printed
"""
LOOK_STATUS = """exit status:
  0   the audit that is printed would run
  2   something is in the way, or the data cannot be read; all of it is said
  70  an unexpected error: please report it
"""
LOOK = """\
How each column is interpreted, what is missing, whether scores are probabilities, percent or logits, repeated rows, all
that would make an audit refuse, and the command to run. Columns that are not named are proposed. Labels are never
compared with scores, so that running it does not affect the guarantee.

examples:
  calibrant look scores.csv
  calibrant look 'log/*.parquet' --label readmitted --score risk --by sex,age
"""
ACCEPT = """\
The largest share of rows that may pass unseen, best scores first, with at most so many of them wrong: certified for all
thresholds at once, so that a threshold may be chosen after looking. Labels say whether an answer was right.

examples:
  calibrant accept answers.csv --label right --score confidence --risk 0.02
  calibrant accept answers.csv --label right --score confidence --by topic --cluster question --out curve.html
  calibrant accept patients.csv --label readmitted --score risk --end low --risk 0.005
  calibrant accept --risk 0.01 --error 0.005 --share 0.6
"""
ACCEPT_STATUS = """exit status:
  0   some may be accepted, or rows were planned
  2   the data or a setting cannot be used; one line says why
  3   nothing can be accepted, certified
  70  an unexpected error: please report it
"""
COMPARE = """\
Models on the same rows, for everyone and every group: what the new one loses more than the old, certified; "no worse"
by a margin that was fixed beforehand. Or audits of different rows, such as two months', that were kept as JSON.

examples:
  calibrant compare log.parquet --label y --score old,new --margin 0.005 --by sex,age
  calibrant compare log.parquet --label y --score old,new,newer --measure log_loss --cluster patient
  calibrant compare log.parquet --label y --score old,new --measure net_benefit --threshold 0.1,0.2 --by sex
  calibrant compare january.json february.json --margin 0.02
"""
COMPARE_STATUS = """exit status:
  0   better, or no worse for anyone
  1   worse for everyone, or for a group
  2   the data or a setting cannot be used; one line says why
  3   undecided
  70  an unexpected error: please report it
"""
AUDIT = """\
One pass over the file (two with --by), whatever its size; then certified bounds for everyone and every group.

examples:
  calibrant audit scores.csv --label readmitted --score risk
  calibrant audit 'log/*.parquet' --label y --score p --by sex,age,site --limit 0.02 --report audit.html
  calibrant audit scores.csv --label outcome --positive yes --score p --json - | jq .verdict
  calibrant audit month/*.sketch --limit 0.02
"""
EXAMPLE = """277,677 Massachusetts residents, 2015 to 2018: a classifier's probability that a person is employed.
Writes calibrant-example.html into the current directory; open it in a browser.
"""
REPORT = """\
Writes from the record alone, which holds no rows: the same bytes as the audit wrote.

examples:
  calibrant audit log.parquet --label y --score p --limit 0.02 --json record.json
  calibrant report record.json --report audit.html --open
  calibrant report record.json --pdf audit.pdf --markdown audit.md
"""
REPORT_STATUS = """exit status:
  0   it is written, whatever its verdict
  2   there is no such record, or it cannot be written; one line says why
  70  an unexpected error: please report it
"""
CERTIFY = """\
Each line says which classifier it is about: the raw score, the score in rounding steps, or a jittered score.

example:
  calibrant certify scores.csv --label y --score p --method rounded,jittered,distance
"""
CHECK_STATUS = """exit status:
  0   it is printed, whatever was found
  2   the data or a setting cannot be used, or it cannot be computed; one line says why
  70  an unexpected error: please report it
"""
CHECK = """\
Prints what `calibrant.{face}.METHOD` returns for the rows of the files, which are read into memory, or for a sketch.
`calibrant {face} METHOD --help` lists its settings, and what it assumes and guarantees.

examples:
{examples}
"""
MEASURE = """\
  calibrant measure klce log.parquet --label y --score p --variables age,sex
  calibrant measure ece log.parquet --label y --score p --by site --out ece.csv"""
DETECT = """\
  calibrant detect local_calibration_test log.parquet --label y --score p --features exact --family laplace
  calibrant detect kernel_tuning log.parquet --label y --score p --by-variable age --gap 0.05 --out tuning.csv"""
DIAGNOSE = """\
  calibrant diagnose rank_variables log.parquet --label y --score p
  calibrant diagnose reliability_curve log.parquet --label y --score p --out curve.html"""
MERGE = "Sketches merge if they were made from one spec: see sketch --like."
PLAN = """An average case for planning, not a certificate. Uniform scores unless a file of scores is given.

examples:
  calibrant plan 0.02                        whole percent, within two points
  calibrant plan 0.01 --steps 50 --side two-sided
  calibrant plan 0.02 --data pilot.parquet --label y --score p
"""
SKETCH = """\
A sketch holds counts of people by score, label and group. Where a group is small they reveal as much as the rows:
guard a sketch like the data. Audits of it give the same numbers as audits of the file.

example:
  calibrant sketch january.parquet --label y --score p --by sex,age --out january.sketch
  calibrant sketch february.parquet --like january.sketch --out february.sketch
  calibrant merge january.sketch february.sketch --out winter.sketch
"""
REPAIR_STATUS = """exit status:
  0   a repair is shown to be better; its calibrator is written
  1   the one repair asked for is shown to be worse; its calibrator is written all the same
  2   the data or a setting cannot be used; one line says why
  3   undecided: no repair is shown to be better. With --method auto, or several, nothing is written
  70  an unexpected error: please report it
"""
APPLY_STATUS = """exit status:
  0   every row is written
  2   the data, the calibrator or a setting cannot be used; one line says why, and nothing is written
  70  an unexpected error: please report it
"""
REPAIR = """\
Fits repairs on one half of a sample of the rows and judges them on the other; then streams every row through the
one recommended. The calibrator that is written is the one that was judged, as JSON without code.

OUT holds every column, SCORE_repaired, and SCORE_fitted_on: true for the rows the calibrator was fitted on, on which it
must never be judged.

examples:
  calibrant repair log.parquet --label y --score p
  calibrant repair log.parquet --label y --score p --by sex,age --out repaired.parquet --calibrator calibrator.json
  calibrant repair log.parquet --label y --score p --by sex,age --limit 0.02
  calibrant repair log.parquet --label y --score p --by sex,age --threshold 0.2
  calibrant repair 2015.parquet --judge-on 2017.parquet --label y --score p --method platt,isotonic --calibrator
  calibrator.json
"""
APPLY = """\
Streams files of any size; covariates that the calibrator reads must be there. OUT holds every column and
SCORE_repaired. Or prints the calibrator as SQL or JavaScript, which repairs scores where they are, without Python.

examples:
  calibrant apply calibrator.json tomorrow.parquet --score p --out tomorrow-repaired.parquet
  calibrant apply calibrator.json --score p --print-sql duckdb --table scores
"""
