/** The list of keyboard shortcuts, with a link to the documentation. */
import { Kbd, Stack, Text } from '@mantine/core';
import { Dialog } from '../parts/forms/dialog.tsx';
import { AnchorLink } from '../parts/tables/links.tsx';
import { text } from '../texts/text.ts';
import classes from './shell.module.css';

const { keys } = text.shell;
const IS_MAC = /Mac|iPhone|iPad/.test(navigator.userAgent);
const nameOf = (key: string) => (key === 'Ctrl' && IS_MAC ? '⌘' : key);

export function KeySheet({ onClose }: { onClose: () => void }) {
  return (
    <Dialog opened onClose={onClose} title={keys.title} size="md">
      <Stack>
        {keys.groups.map(({ name, entries }) => (
          <section key={name}>
            <Text component="h3" size="sm" fw={600} mb={4}>
              {name}
            </Text>
            <dl className={classes.keys}>
              {entries.map(({ does, press }) => (
                <div key={does}>
                  <dt>{does}</dt>
                  <dd>
                    {press.map((key) => (
                      <Kbd key={key} size="xs">
                        {nameOf(key)}
                      </Kbd>
                    ))}
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
        <AnchorLink to="/reference" size="sm" onClick={onClose}>
          {text.shell.apiDocs}
        </AnchorLink>
      </Stack>
    </Dialog>
  );
}
