/** Notifications in the corner: errors with their reasons, and completed actions with their undo. */
import { Button, Group, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { text } from '../texts/text.ts';
import { Prose } from './commands/code.tsx';
import { refusalOf } from './forms/refusal.ts';

const READING_MS = 12_000;
const UNDO_MS = 10_000;

/** Shows an error and what to do. */
export function showRefusal(error: unknown): void {
  const { title, detail } = refusalOf(error);
  notifications.show({
    color: 'red',
    title: <Prose>{title}</Prose>,
    message: <Prose>{detail}</Prose>,
    autoClose: READING_MS,
  });
}

/** Reports success. `undo` reverts the action. */
export function showDone(message: string, undo?: () => void): void {
  const id = notifications.show({
    autoClose: undo === undefined ? 4000 : UNDO_MS,
    message:
      undo === undefined ? (
        message
      ) : (
        <Group justify="space-between" wrap="nowrap">
          <Text size="sm">{message}</Text>
          <Button
            size="compact-sm"
            variant="default"
            onClick={() => {
              notifications.hide(id);
              undo();
            }}
          >
            {text.shell.undo}
          </Button>
        </Group>
      ),
  });
}
