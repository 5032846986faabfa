//! Decisions about records no actor owns: customers, API clients, devices and settings.
