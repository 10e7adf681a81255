"""CPU kernel sources and the table that registers them; ``MicroKernel.source`` reads them."""
