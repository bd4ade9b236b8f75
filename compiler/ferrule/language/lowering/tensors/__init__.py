"""Tensors: elements, views, whole-tensor expressions, vectors, fragments, layouts."""
