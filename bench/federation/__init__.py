"""From a request (data set, scenario, number of clients, seed) to its clients."""
