"""A program for the members of a gang: each adds a power of ten, and all print the sum."""

from __future__ import annotations

ALL_REDUCE = r"""
import os, pathlib, socket, sys, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
mine = 10 ** rank
if rank == 0:
    with socket.create_server(address) as server:
        others = [server.accept()[0] for _ in range(size - 1)]
        total = mine + sum(int(other.recv(100)) for other in others)
        for other in others:
            other.sendall(str(total).encode())
else:
    for _ in range(300):
        try:
            first = socket.create_connection(address)
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    first.sendall(str(mine).encode())
    total = int(first.recv(100))
print(f"{os.environ['CARREL_ROLE']} {rank} of {size}: sum {total}")
print(os.environ["CUDA_VISIBLE_DEVICES"])
(pathlib.Path(os.environ["CARREL_OUTPUT_DIR"]) / f"{rank}.txt").write_text(str(total))
sys.exit(3 if rank == 1 and "fail" in sys.argv else 0)
"""

# The same with PyTorch, whose process group the members' variables are for.
BY_GLOO = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
value = torch.tensor([10.0 ** dist.get_rank()])
dist.all_reduce(value)
print(f"rank {dist.get_rank()} of {dist.get_world_size()}: sum {value.item():.0f}")
dist.destroy_process_group()
"""
