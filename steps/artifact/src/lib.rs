//! builtin://artifact: uploads what a job made and downloads what earlier jobs did.
