//! Which services a plugin has, as it says itself: by reflection in its first version, then in the one before.

use tonic::transport::Channel;
use tonic_reflection::pb::{v1, v1alpha};

/// In no order. `None`: the plugin does not say.
pub async fn services(channel: Channel) -> Option<Vec<String>> {
    match in_v1(channel.clone()).await {
        Some(services) => Some(services),
        // Plugins of 2024 know only this one.
        None => in_v1alpha(channel).await,
    }
}

async fn in_v1(channel: Channel) -> Option<Vec<String>> {
    use v1::server_reflection_request::MessageRequest;
    use v1::server_reflection_response::MessageResponse;
    let message_request = Some(MessageRequest::ListServices(String::new()));
    let request = v1::ServerReflectionRequest { host: String::new(), message_request };
    let mut client = v1::server_reflection_client::ServerReflectionClient::new(channel);
    let mut answers = client.server_reflection_info(tokio_stream::once(request)).await.ok()?.into_inner();
    match answers.message().await.ok()??.message_response? {
        MessageResponse::ListServicesResponse(list) => Some(list.service.into_iter().map(|service| service.name).collect()),
        _ => None,
    }
}

async fn in_v1alpha(channel: Channel) -> Option<Vec<String>> {
    use v1alpha::server_reflection_request::MessageRequest;
    use v1alpha::server_reflection_response::MessageResponse;
    let message_request = Some(MessageRequest::ListServices(String::new()));
    let request = v1alpha::ServerReflectionRequest { host: String::new(), message_request };
    let mut client = v1alpha::server_reflection_client::ServerReflectionClient::new(channel);
    let mut answers = client.server_reflection_info(tokio_stream::once(request)).await.ok()?.into_inner();
    match answers.message().await.ok()??.message_response? {
        MessageResponse::ListServicesResponse(list) => Some(list.service.into_iter().map(|service| service.name).collect()),
        _ => None,
    }
}
