"""A model runner without a model, for tests of everything around it and for measuring what that costs.

It runs real step plans on a real request table and a KV pool of one number per slot, and it answers with tokens that
follow from a request's whole history. A plan that reads a slot which holds something else, because it was shared
wrongly, overwritten or left over, gets other tokens than :func:`~bough_fake.model.expected_tokens` says. No torch here.

Processes of a server find it as a package that is installed beside Bough.
"""
