// IeumClient
