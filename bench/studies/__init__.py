"""What studies compare, and what stored runs say of it: cells with their values, published and measured."""
