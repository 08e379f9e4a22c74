
-- False, by computation: a coin equal to p keeps the proposal.
-- Rejected: Eq (lt z.s z.s) B.t
theorem border : Eq (lt (s z) (s z)) B.t := Eq.refl B.t
