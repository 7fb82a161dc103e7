/** Windows over the page: a general one, a question, and a form. */
import { Button, Group, Modal, type ModalProps, Stack, Text, TextInput } from '@mantine/core';
import { type FormEvent, type ReactNode, useEffect, useState } from 'react';
import { text } from '../../texts/text.ts';
import type { SentForm } from '../cloud-form.ts';
import { Refused } from './warning.tsx';

export function Dialog(props: ModalProps) {
  return (
    <>
      {props.opened && <FocusReturn />}
      <Modal returnFocus={false} {...props} />
    </>
  );
}

/**
 * Rendered while a window is open: closing it returns the focus to where it was opened. Mantine's
 * own solution fails for windows that are unmounted while open, and for those opened by a menu
 * item, which is gone by then.
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

/** Only if nothing else has the focus. */
function goBack(opener: HTMLElement | null): void {
  const { activeElement, body } = document;
  if (activeElement !== body && !activeElement?.closest('[role=dialog]')) return;
  opener?.focus();
  const goToHeading = () => document.activeElement === body && document.querySelector('h1')?.focus();
  if (opener?.isConnected !== true) return void goToHeading();
  // The row of a deleted resource disappears once the list is read again.
  const rows = new MutationObserver(() => {
    if (!opener.isConnected) goToHeading();
    if (document.activeElement !== opener) rows.disconnect();
  });
  rows.observe(body, { childList: true, subtree: true });
}

interface ConfirmProps {
  readonly isOpen: boolean;
  readonly title: string;
  /** The consequences. */
  readonly children: ReactNode;
  /** The button: `Delete bucket`. */
  readonly action: string;
  /** A name to type before confirming, for actions that destroy more than the resource itself. */
  readonly typed?: string | undefined;
  /** Not destructive: the button is not red, and has the focus. */
  readonly isHarmless?: boolean;
  readonly isBusy?: boolean;
  readonly error?: unknown;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
}

/**
 * Asks before an action that cannot be undone. Enter and Space right after opening have no effect:
 * Cancel has the focus, unless the action is harmless.
 */
export function Confirm({ isOpen, title, onClose, ...question }: ConfirmProps) {
  return (
    <Dialog opened={isOpen} onClose={onClose} title={title}>
      {isOpen && <Question {...question} onClose={onClose} />}
    </Dialog>
  );
}

function Question(props: Omit<ConfirmProps, 'isOpen' | 'title'>) {
  const { children, action, typed, isHarmless = false, isBusy = false, error, onConfirm, onClose } = props;
  const [given, setGiven] = useState('');
  const isTyped = typed === undefined || given.trim() === typed.trim();
  const send = (event: FormEvent) => {
    event.preventDefault();
    event.stopPropagation(); // the page's own form may be around it
    if (isTyped && !isBusy) onConfirm();
  };
  return (
    <form onSubmit={send}>
      <Stack>
        <Text component="div" size="sm">
          {children}
        </Text>
        {typed !== undefined && (
          <TextInput
            label={text.shell.typeName(typed)}
            value={given}
            autoComplete="off"
            autoCapitalize="none"
            spellCheck={false}
            onChange={({ currentTarget }) => setGiven(currentTarget.value)}
          />
        )}
        <Refused error={error} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose} data-autofocus={!isHarmless || undefined}>
            {text.shell.cancel}
          </Button>
          <Button
            type="submit"
            color={isHarmless ? 'petrol' : 'red.9'}
            loading={isBusy}
            disabled={!isTyped}
            data-autofocus={isHarmless || undefined}
          >
            {action}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

interface FormModalProps {
  readonly isOpen: boolean;
  readonly title: string;
  /** The button: `Create plan`. */
  readonly action: string;
  readonly form: SentForm;
  /** The form is incomplete. */
  readonly isIncomplete?: boolean;
  /** Width; default: `md`. */
  readonly size?: 'lg';
  /** Shown above other dialogs. */
  readonly zIndex?: number;
  readonly children: ReactNode;
  readonly onClose: () => void;
}

/** Fields, the errors that no field shows, and the submit button. */
export function FormModal(props: FormModalProps) {
  const { isOpen, title, action, form, isIncomplete = false, size, zIndex = 200, children, onClose } = props;
  return (
    <Dialog opened={isOpen} onClose={onClose} title={title} zIndex={zIndex} {...(size && { size })}>
      <form onSubmit={form.submit}>
        <Stack>
          {children}
          <Refused {...form.refusal} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {text.shell.cancel}
            </Button>
            <Button type="submit" loading={form.isBusy} disabled={isIncomplete}>
              {action}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}
