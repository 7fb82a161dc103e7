/** The statements of collected changes, shown before they run. */
import { Button, Code, Group, Stack, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import type { DatabaseRowChanges } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { Dialog } from '../../../parts/forms/dialog.tsx';
import { Refused } from '../../../parts/forms/warning.tsx';
import { showDone } from '../../../parts/notices.tsx';
import { Loaded } from '../../../parts/page.tsx';
import { rowsText } from '../../../texts/rows-text.ts';
import { text } from '../../../texts/text.ts';
import classes from './rows.module.css';

const words = rowsText;

interface ReviewProps {
  readonly id: string;
  readonly body: DatabaseRowChanges;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function Review(props: ReviewProps) {
  return (
    <Dialog opened onClose={props.onClose} title={words.review(props.body.changes.length)} size="lg">
      <Statements {...props} />
    </Dialog>
  );
}

function Statements({ id, body, onClose, onDone }: ReviewProps) {
  const shown = useQuery({
    queryKey: ['databases', id, 'change', body],
    queryFn: () => cloud.changeDatabaseRows(id, { ...body, dry_run: true }),
    gcTime: 0,
  });
  const run = useMutation({
    mutationFn: () => cloud.changeDatabaseRows(id, body),
    meta: { shown: true },
    onSuccess: ({ changed }) => {
      showDone(words.changed(changed));
      onDone();
    },
  });
  // The old values of changed and deleted rows are gone for good.
  const isHarmless = body.changes.every(({ action }) => action === 'insert');
  return (
    <Stack>
      <Text size="sm">{words.reviewLead}</Text>
      <Loaded query={shown}>
        {({ statements }) => (
          // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached with the keyboard
          <section className={classes.statements} tabIndex={0} aria-label={words.statements}>
            {statements.map(({ statement, command, params }, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: two may be the same
              <Code block key={at}>
                {statement ?? JSON.stringify(command)}
                {params.length > 0 && `\n-- ${JSON.stringify(params)}`}
              </Code>
            ))}
          </section>
        )}
      </Loaded>
      <Refused error={run.error} />
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose} data-autofocus={isHarmless ? undefined : true}>
          {text.shell.cancel}
        </Button>
        <Button
          data-autofocus={isHarmless || undefined}
          color={isHarmless ? 'petrol' : 'red.9'}
          loading={run.isPending}
          disabled={!shown.isSuccess}
          onClick={() => run.mutate()}
        >
          {words.run(body.changes.length)}
        </Button>
      </Group>
    </Stack>
  );
}
