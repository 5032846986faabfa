//! Which secrets are sealed, and for what? A secret opens only for what it was sealed for, so one
//! that was moved to another record does not open.

use crate::credentials::Psk;
use crate::delivery::destination::{Destination, Target};
use crate::directory::destination::SealedField;
use crate::idempotency::{CreatedByCall, IdempotencyKey, IdempotencyRecord};
use crate::ids::{DestinationId, DeviceKey};
use crate::profile::Profile;
use crate::sealed::Sealed;

/// What a secret is sealed for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SecretOwner<'a> {
    /// A device: its pre-shared keys.
    Device(DeviceKey),
    /// A field of a destination.
    Destination(DestinationId, SealedField<'a>),
    /// A call: its response.
    Call(IdempotencyKey),
    /// The service: its private key for DTLS.
    ServerKey,
    /// The bootstrap of a device: the private keys of its certificates.
    Bootstrap(DeviceKey),
}

impl SecretOwner<'_> {
    /// The bytes that are authenticated with the secret.
    pub fn context(self) -> Vec<u8> {
        match self {
            Self::Device(device) => device.as_bytes().to_vec(),
            Self::Destination(id, field) => {
                let (kind, name) = match field {
                    SealedField::Header(name) => (b"header ".as_slice(), name),
                    SealedField::Secret => (b"secret ".as_slice(), ""),
                    SealedField::WebhookKey => (b"webhook key ".as_slice(), ""),
                    SealedField::BrokerPassword => (b"broker password ".as_slice(), ""),
                    SealedField::BrokerKey => (b"broker key ".as_slice(), ""),
                };
                [kind, id.as_bytes(), name.as_bytes()].concat()
            }
            Self::ServerKey => b"private key of the service".to_vec(),
            Self::Bootstrap(device) => [b"bootstrap ", &device.as_bytes()[..]].concat(),
            Self::Call(key) => [b"response of a call ", &key.as_bytes()[..]].concat(),
        }
    }
}

/// A record with secrets.
pub trait HoldsSecrets {
    /// Passes each secret with what it is sealed for. Whoever visits may replace it.
    fn visit_secrets(&mut self, visit: &mut dyn FnMut(SecretOwner<'_>, &mut Sealed));
}

impl HoldsSecrets for Profile {
    fn visit_secrets(&mut self, visit: &mut dyn FnMut(SecretOwner<'_>, &mut Sealed)) {
        let owner = SecretOwner::Device(self.key());
        let credentials = &mut self.credentials;
        for psk in credentials.psk.iter_mut().chain(&mut credentials.issued) {
            for Psk { key, .. } in [&mut psk.key].into_iter().chain(&mut psk.previous) {
                visit(owner, key);
            }
        }
    }
}

impl HoldsSecrets for Destination {
    fn visit_secrets(&mut self, visit: &mut dyn FnMut(SecretOwner<'_>, &mut Sealed)) {
        let id = self.id;
        let of = |field| SecretOwner::Destination(id, field);
        match &mut self.target {
            Target::Webhook(webhook) => {
                for header in &mut webhook.headers {
                    visit(of(SealedField::Header(&header.name)), &mut header.value);
                }
                if let Some(secret) = &mut webhook.secret {
                    visit(of(SealedField::Secret), secret);
                }
            }
            Target::Plugin(plugin) => visit(of(SealedField::WebhookKey), &mut plugin.webhook_key),
            Target::SmsForwarder(_) => {}
            Target::Broker(broker) => {
                if let Some(password) = &mut broker.password {
                    visit(of(SealedField::BrokerPassword), password);
                }
                if let Some(certificate) = &mut broker.certificate {
                    visit(of(SealedField::BrokerKey), &mut certificate.key);
                }
            }
        }
    }
}

impl HoldsSecrets for IdempotencyRecord {
    fn visit_secrets(&mut self, visit: &mut dyn FnMut(SecretOwner<'_>, &mut Sealed)) {
        match &mut self.created {
            CreatedByCall::Action { .. } => {}
            CreatedByCall::Answered(response) => visit(SecretOwner::Call(self.call.key), response),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_of_one_owner_or_field_is_not_sealed_for_another() {
        let device = DeviceKey::from_bytes([7; 16]);
        let id = DestinationId::from_bytes([7; 16]);
        let call = IdempotencyKey::from_bytes([7; 16]);
        let fields = [
            SealedField::Header("a"),
            SealedField::Header("b"),
            SealedField::Secret,
            SealedField::WebhookKey,
            SealedField::BrokerPassword,
            SealedField::BrokerKey,
        ];
        let mut contexts = vec![
            SecretOwner::Device(device).context(),
            SecretOwner::Call(call).context(),
            SecretOwner::ServerKey.context(),
            SecretOwner::Bootstrap(device).context(),
        ];
        contexts.extend(fields.map(|field| SecretOwner::Destination(id, field).context()));
        let count = contexts.len();
        contexts.sort();
        contexts.dedup();
        assert_eq!(contexts.len(), count);
    }
}
