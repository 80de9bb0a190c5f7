"""HolisticTraceAnalysis on a folder of traces: load, overlap, temporal breakdown. Run with the Python that has it."""
import sys

from hta.trace_analysis import TraceAnalysis

if __name__ == "__main__":
    analysis = TraceAnalysis(trace_dir=sys.argv[1])
    analysis.get_comm_comp_overlap(visualize=False)
    analysis.get_temporal_breakdown(visualize=False)
