"""How a plain folder of videos is read: models, scenes, seeds and the truth, from what repeats in its paths."""
