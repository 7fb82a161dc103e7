/** Asks before something is done that cannot be taken back. */
import { Button, Group, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { text } from '../texts/text.ts';
import { Dialog } from './dialog.tsx';
import { Refused } from './refused.tsx';

interface ConfirmProps {
  readonly isOpen: boolean;
  readonly title: string;
  /** The consequences. */
  readonly children: ReactNode;
  /** The button: `Delete bucket`. */
  readonly action: string;
  /** Takes nothing away: the button is not red. */
  readonly isHarmless?: boolean;
  readonly isBusy?: boolean;
  readonly error?: unknown;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
}

export function Confirm(props: ConfirmProps) {
  const { isOpen, title, children, action, isHarmless = false, isBusy = false } = props;
  const { error, onConfirm, onClose } = props;
  return (
    <Dialog opened={isOpen} onClose={onClose} title={title}>
      <Stack>
        <Text component="div" size="sm">
          {children}
        </Text>
        <Refused error={error} />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {text.shell.cancel}
          </Button>
          <Button color={isHarmless ? 'petrol' : 'red.9'} loading={isBusy} onClick={onConfirm} data-autofocus>
            {action}
          </Button>
        </Group>
      </Stack>
    </Dialog>
  );
}
