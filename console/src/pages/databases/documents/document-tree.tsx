/** A document as a tree: collapsed members are not rendered, nor are all members of a large object. */
import { Button } from '@mantine/core';
import { useState } from 'react';
import { documentsText as words } from '../../../texts/documents-text.ts';
import classes from './documents.module.css';
import { shownValue } from './values.ts';

const FIRST_MEMBERS = 100;

export function DocumentTree({ value }: { readonly value: object }) {
  const [most, setMost] = useState(FIRST_MEMBERS);
  const members = Object.entries(value);
  return (
    <ul className={classes.tree}>
      {members.slice(0, most).map(([name, inner]) => (
        <li key={name}>
          <Member name={name} value={inner} />
        </li>
      ))}
      {members.length > most && (
        <li>
          <Button size="compact-xs" variant="subtle" onClick={() => setMost(most + 10 * FIRST_MEMBERS)}>
            {words.moreMembers(members.length - most)}
          </Button>
        </li>
      )}
    </ul>
  );
}

function Member({ name, value }: { readonly name: string; readonly value: unknown }) {
  const [isOpen, setOpen] = useState(false);
  const single = shownValue(value);
  if (single !== null)
    return (
      <span className={classes.member}>
        <b>{name}</b> <span>{single.text}</span> <small>{single.type}</small>
      </span>
    );
  const inner = value as object;
  const type = Array.isArray(value) ? words.list(value.length) : words.object(Object.keys(inner).length);
  return (
    <details open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <b>{name}</b> <small>{type}</small>
      </summary>
      {isOpen && <DocumentTree value={inner} />}
    </details>
  );
}
