use super::*;

#[test]
fn a_label_is_taken_once_and_checked() {
    let control = Control::new();
    assert_eq!(control.take_label(), None);
    for bad in ["", "a\nb", "a label that is far too long for the 32 bytes"] {
        assert_eq!(control.label_next(bad), Err(Error::BadLabel));
    }
    control.label_next("wörker").unwrap();
    assert_eq!(control.label_next(""), Err(Error::BadLabel)); // changes nothing
    assert_eq!(control.take_label(), Label::new("wörker").ok());
    assert_eq!(control.take_label(), None);
}

std::thread_local! {
    static CURRENT: std::cell::Cell<*const ()> = const { std::cell::Cell::new(ptr::null()) };
}

#[test]
fn giver_alone_takes_its_command_and_others_wait_for_that() {
    let tasks = [0, 1];
    let [giver, other] = [0, 1].map(|n| (&raw const tasks[n]).cast::<()>());
    let has_cpu = |task| CURRENT.set(task);
    let control = Control::new();
    control.connect(2, || CURRENT.get());
    has_cpu(giver);
    control.measure_start().unwrap();
    has_cpu(other);
    assert!(control.take_command().is_none());
    assert_eq!(control.measure_start(), Err(Error::Contended));
    assert_eq!(control.plan(), Err(Error::Contended));
    assert_eq!(
        control.status().map(|status| status.mode),
        Ok(Mode::Measuring)
    );
    has_cpu(giver);
    assert!(
        control
            .on_top_of_a_call(|| control.take_command())
            .is_none()
    );
    let (command, found) = control.take_command().unwrap();
    assert!(matches!(command, Command::Measure(_)) && ptr::eq(found, giver));
    has_cpu(other);
    assert_eq!(control.measure_start(), Err(Error::AlreadyMeasuring));
}
