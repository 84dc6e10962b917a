//! Between the messages of the wire and the nouns of the model (proto <-> model), in JSON and in text format.
