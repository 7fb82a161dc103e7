/** A form in a window: fields, the refusal, and the button that sends it. */
import { Button, Group, Stack } from '@mantine/core';
import type { ReactNode } from 'react';
import { text } from '../texts/text.ts';
import { Dialog } from './dialog.tsx';
import { Refused } from './refused.tsx';

interface FormModalProps {
  readonly isOpen: boolean;
  readonly title: string;
  /** The button: `Create plan`. */
  readonly action: string;
  readonly isBusy: boolean;
  readonly error: unknown;
  readonly children: ReactNode;
  readonly onSubmit: () => void;
  readonly onClose: () => void;
}

export function FormModal(props: FormModalProps) {
  const { isOpen, title, action, isBusy, error, children, onSubmit, onClose } = props;
  return (
    <Dialog opened={isOpen} onClose={onClose} title={title}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit();
        }}
      >
        <Stack>
          {children}
          <Refused error={error} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {text.shell.cancel}
            </Button>
            <Button type="submit" loading={isBusy}>
              {action}
            </Button>
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}
