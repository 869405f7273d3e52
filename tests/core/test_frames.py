"""Frame facts, thumbnails and phases."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from revisit.core import MediaError, from_arrays, to_arrays
from revisit.evidence.frames import FrameFacts, Thumbnails
from revisit.observers.frames import frame_facts, judge_frames, thumbnails
from tests.looking import as_frames, look, wall, window


def test_an_exact_repeat_shows_in_the_digests():
    scene = wall()
    facts: FrameFacts = look(frame_facts, as_frames([window(scene, x) for x in (0, 8, 8, 16)]))
    assert facts.repeats().tolist() == [False, False, True, False]
    assert facts.digest.shape == (4, 16)
    assert (facts.width, facts.height, facts.fps) == (320, 180, 24.0)
    assert facts.frame_count == 4


def test_luma_and_sharpness_follow_the_picture():
    sharp = window(wall(), 0)
    soft = cv2.GaussianBlur(sharp, (0, 0), 3)
    facts = look(frame_facts, as_frames([sharp, soft, np.full_like(sharp, 255), np.zeros_like(sharp)]))
    assert facts.sharpness[0] > 5 * facts.sharpness[1]
    assert facts.luma[2:].tolist() == [1.0, 0.0]


def test_a_judge_is_shown_one_frame_at_least():
    frames = np.zeros((3, 32, 32, 3), np.uint8)
    assert judge_frames(frames, at_most=1).index.tolist() == [0]
    with pytest.raises(MediaError, match="none of the clip's frames are to be shown"):
        judge_frames(frames, at_most=0)


def test_thumbnails_are_pictures_of_8_frames_a_second_and_survive_saving():
    scene = wall()
    frames = as_frames([window(scene, x) for x in range(0, 400, 2)])
    made: Thumbnails = look(thumbnails, frames)
    made = from_arrays(Thumbnails, to_arrays(made))
    assert len(made.index) == 68  # every third one of 200, and the last
    assert made.index[[0, -1]].tolist() == [0, 199]
    picture = np.asarray(cv2.imdecode(np.frombuffer(made.picture(0), np.uint8), cv2.IMREAD_COLOR))[:, :, ::-1]
    assert picture.shape == (made.height, made.width, 3) == (108, 192, 3)
    small = cv2.resize(frames[0].rgb, (192, 108), interpolation=cv2.INTER_AREA)
    assert np.abs(picture.astype(int) - small).mean() < 8
