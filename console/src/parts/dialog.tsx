/** A window over the page. */
import { Modal, type ModalProps } from '@mantine/core';
import { useEffect, useState } from 'react';

export function Dialog(props: ModalProps) {
  return (
    <>
      {props.opened && <FocusReturn />}
      <Modal returnFocus={false} {...props} />
    </>
  );
}

/**
 * There while a window is open: who closes it is back where it was opened. Mantine's own way forgets windows
 * that are taken out of the page open, and those that the item of a menu opened: it is gone by then.
 */
export function FocusReturn() {
  const [opener] = useState(findOpener);
  useEffect(() => () => void setTimeout(() => goBack(opener)), [opener]);
  return null;
}

function findOpener(): HTMLElement | null {
  const { activeElement } = document;
  const menu = activeElement?.closest('[role=menu]');
  const opener = menu ? document.getElementById(menu.getAttribute('aria-labelledby') ?? '') : activeElement;
  return opener instanceof HTMLElement ? opener : null;
}

/** Not when something else has the focus meanwhile. */
function goBack(opener: HTMLElement | null): void {
  const { activeElement, body } = document;
  if (activeElement !== body && !activeElement?.closest('[role=dialog]')) return;
  opener?.focus();
  const goToHeading = () => document.activeElement === body && document.querySelector('h1')?.focus();
  if (opener?.isConnected !== true) return void goToHeading();
  // A row deleted in the window disappears once the list is read again.
  const rows = new MutationObserver(() => {
    if (!opener.isConnected) goToHeading();
    if (document.activeElement !== opener) rows.disconnect();
  });
  rows.observe(body, { childList: true, subtree: true });
}
