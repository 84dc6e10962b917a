//! Serialized result trees read back, node by node: a reader of protobuf stops at a hundred levels, and a tree of steps whose values nest has more.

use super::OwnedTree;
use super::read::{Unreadable, node_of};
use ci_proto::step_runner::StepResult as StepResultMessage;
use prost::Message as _;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use step_model::result::StepId;

/// `StepResult.sub_step_results`.
const CHILDREN: u32 = 9;

/// Steps nest at most 64 deep; a stranger's bytes must not take our stack.
const DEEPEST: usize = 200;

/// Reads a serialized `proto.StepResult`. Fields that are not known are skipped.
/// # Errors
/// The bytes are no result.
pub fn read_message(bytes: &[u8]) -> Result<OwnedTree, Unreadable> {
    let (node, children) = split(bytes)?;
    let mut tree = OwnedTree::of(node_of(node));
    add_children(&mut tree, StepId::ROOT, children, 0)?;
    Ok(tree)
}

fn add_children(tree: &mut OwnedTree, parent: StepId, children: Vec<&[u8]>, depth: usize) -> Result<(), Unreadable> {
    if depth > DEEPEST {
        return Err(Unreadable::NoResult("its steps nest deeper than 200 levels"));
    }
    for child in children {
        let (node, children) = split(child)?;
        let id = tree.add(parent, node_of(node)).ok_or(Unreadable::NoResult("it has more steps than can be numbered"))?;
        add_children(tree, id, children, depth + 1)?;
    }
    Ok(())
}

/// A node by itself, and the bytes of its children.
fn split(bytes: &[u8]) -> Result<(StepResultMessage, Vec<&[u8]>), Unreadable> {
    let broken = |_| Unreadable::NoResult("its bytes are no protobuf message");
    let (mut own, mut children) = (Vec::with_capacity(bytes.len().min(4096)), Vec::new());
    let mut rest = bytes;
    while !rest.is_empty() {
        let field = rest;
        let (number, kind) = decode_key(&mut rest).map_err(broken)?;
        if number == CHILDREN && kind == WireType::LengthDelimited {
            let length = decode_varint(&mut rest).map_err(broken)?;
            let length = usize::try_from(length).ok().filter(|length| *length <= rest.len());
            let (child, after) = rest.split_at(length.ok_or(Unreadable::NoResult("it is cut off"))?);
            children.push(child);
            rest = after;
        } else {
            skip_field(kind, number, &mut rest, DecodeContext::default()).map_err(broken)?;
            own.extend_from_slice(&field[..field.len() - rest.len()]);
        }
    }
    Ok((StepResultMessage::decode(own.as_slice()).map_err(broken)?, children))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ci_proto::step_runner::{Step, step_result};
    use step_model::result::{ResultTree as _, Status};

    fn node(name: &str, sub_step_results: Vec<StepResultMessage>) -> StepResultMessage {
        let step = Some(Step { name: name.into(), ..Step::default() });
        StepResultMessage { step, status: step_result::Status::Success.into(), sub_step_results, ..StepResultMessage::default() }
    }

    #[test]
    fn a_tree_keeps_its_shape_and_order() {
        let message = node("", vec![node("a", vec![node("b", vec![]), node("c", vec![])]), node("d", vec![])]);
        let tree = read_message(&message.encode_to_vec()).expect("a tree");
        let name = |id: &StepId| tree.node(*id).name.to_string();
        let top = tree.children(StepId::ROOT);
        assert_eq!(top.iter().map(name).collect::<Vec<_>>(), ["a", "d"]);
        assert_eq!(tree.children(top[0]).iter().map(name).collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(tree.node(StepId::ROOT).status, Status::Success);
    }

    #[test]
    fn a_tree_deeper_than_a_reader_of_protobuf_goes_is_read() {
        let deep = |levels| (0..levels).fold(node("leaf", vec![]), |inner, _| node("s", vec![inner]));
        assert_eq!(read_message(&deep(150).encode_to_vec()).expect("a tree").len(), 151);
        assert!(read_message(&deep(300).encode_to_vec()).is_err());
    }

    #[test]
    fn strange_bytes_are_refused_and_unknown_fields_are_not() {
        let mut bytes = node("a", vec![]).encode_to_vec();
        bytes.extend_from_slice(&[0xfa, 0xff, 0x07, 0x01, b'x']);
        assert_eq!(read_message(&bytes).expect("a tree").len(), 1);
        for broken in [&b"\xff\xff\xff"[..], b"\x4a\x7f", b"\x0b"] {
            assert!(read_message(broken).is_err(), "{broken:?}");
        }
        assert_eq!(read_message(b"").expect("an empty message").len(), 1);
    }
}
