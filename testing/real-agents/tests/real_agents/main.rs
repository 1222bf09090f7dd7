//! The real CLIs against the scripted models.
