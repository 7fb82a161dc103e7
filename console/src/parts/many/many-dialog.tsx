/** One action for several resources, with the outcome of each. */
import { Button, Group, Progress, Stack, Text, TextInput } from '@mantine/core';
import { type QueryKey, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type Key, useState } from 'react';
import { listsText as lists } from '../../texts/lists-text.ts';
import { text } from '../../texts/text.ts';
import { Dialog } from '../forms/dialog.tsx';
import { OutcomeList } from './outcome-list.tsx';
import { useMany } from './use-many.ts';

interface ManyDialogProps<Item> {
  readonly title: string;
  /** The consequences. */
  readonly lead: string;
  /** The button. */
  readonly action: string;
  /** Name of the list for screen readers. */
  readonly label: string;
  readonly items: readonly Item[];
  readonly keyOf: (item: Item) => Key;
  readonly nameOf: (item: Item) => string;
  readonly send: (item: Item) => Promise<unknown>;
  /** Read again afterwards. */
  readonly queryKey: QueryKey;
  /** Their number is typed first. */
  readonly isDangerous?: boolean;
  readonly onClose: () => void;
}

export function ManyDialog<Item>(props: ManyDialogProps<Item>) {
  const { title, lead, action, label, items, keyOf, nameOf, queryKey, isDangerous = false, onClose } = props;
  const queries = useQueryClient();
  const [typed, setTyped] = useState('');
  const { outcomes, isBusy, done, failed, start, stop } = useMany({
    items,
    keyOf,
    send: props.send,
    onEnd: () => queries.invalidateQueries({ queryKey }),
  });
  const isBegun = outcomes.size > 0;
  const close = () => {
    stop();
    onClose();
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!isBusy) void start(undefined);
  };
  const mustType = isDangerous && !isBegun;
  return (
    <Dialog opened onClose={close} title={title} size="lg">
      <form onSubmit={submit}>
        <Stack>
          <Text>{lead}</Text>
          {mustType && (
            <TextInput
              label={lists.typeCount(items.length)}
              autoComplete="off"
              value={typed}
              onChange={({ currentTarget }) => setTyped(currentTarget.value)}
            />
          )}
          {isBegun && <Progress value={(outcomes.size * 100) / items.length} aria-label={lists.progress} />}
          <Text size="sm" role="status">
            {isBegun ? lists.outcome(done, failed, items.length) : ''}
          </Text>
          <OutcomeList label={label} items={items} keyOf={keyOf} nameOf={nameOf} outcomes={outcomes} />
          <Group justify="flex-end">
            <Button variant="default" data-autofocus onClick={close}>
              {isBegun ? lists.close : text.shell.cancel}
            </Button>
            {done < items.length && (
              <Button
                type="submit"
                loading={isBusy}
                color={isDangerous ? 'red.9' : 'petrol'}
                disabled={mustType && typed.trim() !== String(items.length)}
              >
                {isBegun ? lists.again : action}
              </Button>
            )}
          </Group>
        </Stack>
      </form>
    </Dialog>
  );
}
