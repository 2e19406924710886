"""Clusters of rows and rows that count more: clusters are independent, and nothing else is assumed of them.

Theorems CL and CU of docs/proofs-clusters.md, in `bounds`: from below a bet on a learnt or constant witness, one factor
a cluster; from above one that pays for every pattern of signs at once, and bounds what that costs.
"""
