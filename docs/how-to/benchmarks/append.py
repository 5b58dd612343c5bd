"""Appends records of 1000 bytes to a log: append.py FOLDER SECONDS --sync=each|never."""
import os, sys, time

folder, seconds, each = sys.argv[1], float(sys.argv[2]), "--sync=never" not in sys.argv
log = os.open(f"{folder}/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

def show(second, times):
    times = sorted(times)
    shares = [times[int(share * len(times))] for share in (0.5, 0.95, 0.99)]
    latencies = [f"{1e6 * one:.1f}" for one in (sum(times) / len(times), *shares, times[-1])]
    print(second, len(times), 0, *latencies, sep=",", flush=True)

print("second,operations,errors,mean_us,p50_us,p95_us,p99_us,max_us")
every, own, second, begin = [], [], 1, time.perf_counter()
while (before := time.perf_counter()) < begin + seconds:
    os.write(log, bytes(1000))  # your operation
    if each:
        os.fdatasync(log)
    after = time.perf_counter()
    own.append(after - before)
    if after - begin >= second or after - begin >= seconds:
        every += own
        show(round(after - begin, 3), own)
        own, second = [], second + 1
if own:
    every += own
    show(round(time.perf_counter() - begin, 3), own)
show("total", every)
