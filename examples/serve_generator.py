"""A generator's loop in miniature: loads a small network once, and serves jobs over stdin and stdout.

    revisit generate mind --data MIND-Data --model tiny --serve 'python examples/serve_generator.py' --workers 2

Put your own model in the place of `load` and `frames_of`. The loop needs nothing of Revisit: a job is a line of JSON,
the answer is a line of JSON, and the clip is written to job["out"] (here with PyAV). Say {"ready": true} when the
weights are there: until then another clock runs (`--load-timeout`). Everything else that is printed is only kept as the
process's last words, and what goes to stderr, too.
"""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from typing import Any


def load() -> Any:
    """The network: three convolutions that change a frame a little, one after the other."""
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.Tanh(), torch.nn.Conv2d(8, 3, 3, padding=1), torch.nn.Tanh()
    )
    return net.to("cuda" if torch.cuda.is_available() else "cpu").eval()


def frames_of(net: Any, job: dict[str, Any]) -> Any:
    """Frames (count, height, width, 3) of bytes: noise of the job's seed, and what the network makes of it."""
    import torch

    width, height = job["size"]
    device = next(net.parameters()).device
    frame = torch.rand(1, 3, height, width, generator=torch.Generator().manual_seed(job["seed"])).to(device)
    frames = []
    with torch.inference_mode():
        for _ in range(job["frames"]):
            frames.append((255 * frame[0].permute(1, 2, 0)).clamp(0, 255).byte().cpu().numpy())
            frame = (frame + 0.1 * net(2 * frame - 1)).clamp(0, 1)
    return frames


def write(path: str, frames: Any, fps: float) -> None:
    """An mp4 file of frames."""
    import av

    with av.open(path, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=Fraction(fps).limit_denominator(1000))
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        for rgb in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(rgb, format="rgb24")))
        container.mux(stream.encode())


def main() -> None:
    """Load once, then answer every job with done, or with why not."""
    net = load()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        try:
            write(job["out"], frames_of(net, job), job["fps"])
            answer = {"id": job["id"], "status": "done"}
        except Exception as error:
            answer = {"id": job["id"], "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
