"""stub"""
from pathlib import Path
RESULTS = Path(__file__).parent / "results"
MODES = {"pure-replace": "", "delta-add": ""}
RUNS = 3
def key_of(run): return run["mode"], run["variant"], run["seed"]
def line(run, document):
    s = f"{run['mode']} {run['variant']} {run['seed']} {run['outcome']} {run.get('bound')} {run.get('cpu')} {run.get('error','')} {run.get('models')}"
    for a, st in zip(run.get("answers", ()), document["statistics"]):
        s += f"\n    {st['kind']:28} {st['query'][:60]:60} " + (a.get("error") or f"true {st['truth']:.5g} est {a['estimate']:.5g} err {abs(a['estimate']-st['truth'])/st['unit']:.5f} half {(a['high']-a['low'])/2/st['unit']:.5f} {'' if a['low']<=st['truth']<=a['high'] else 'OUTSIDE'} {a['how'][:80]}")
    return s
def write(): return Path(__file__)
