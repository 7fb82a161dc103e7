/** A document of a list: one line, or its tree with the actions on it. */
import { ChevronDownIcon, ChevronRightIcon } from '@heroicons/react/24/outline';
import { Badge, Button, Group, Text, UnstyledButton } from '@mantine/core';
import { useState } from 'react';
import { sayBytes } from '../../../parts/say.ts';
import { documentsText as words } from '../../../texts/documents-text.ts';
import { DocumentTree } from './document-tree.tsx';
import classes from './documents.module.css';
import { type Document, preview, sayId } from './values.ts';

interface CardProps {
  readonly document: Document;
  /** null: new, and not stored. */
  readonly bytes: number | null;
  readonly mark: 'new' | 'changed' | 'deleted' | undefined;
  /** Whether only its `_id` was read, because it is large. */
  readonly isPart: boolean;
  readonly canEdit: boolean;
  readonly onEdit: () => void;
  readonly onDelete: () => void;
  readonly onCopy: () => void;
}

export function DocumentCard({ document, bytes, mark, isPart, canEdit, ...on }: CardProps) {
  const [isOpen, setOpen] = useState(false);
  const id = document._id === undefined ? words.newId : sayId(document._id);
  const Chevron = isOpen ? ChevronDownIcon : ChevronRightIcon;
  return (
    <li className={classes.card} data-mark={mark}>
      <div className={classes.cardHead}>
        <UnstyledButton className={classes.opener} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          <Chevron width={16} aria-hidden />
          <b className={classes.id}>{id}</b>
          <span className={classes.preview}>
            {isPart ? words.large(sayBytes(bytes ?? 0)) : preview(document)}
          </span>
        </UnstyledButton>
        {mark !== undefined && <Badge variant="light">{words.marks[mark]}</Badge>}
        {canEdit && !isPart && (
          <Group gap={4} wrap="nowrap">
            {mark !== 'deleted' && (
              <Button size="compact-xs" variant="default" aria-label={words.editOf(id)} onClick={on.onEdit}>
                {words.edit}
              </Button>
            )}
            {mark !== 'new' && mark !== 'deleted' && (
              <Button size="compact-xs" variant="default" aria-label={words.copyOf(id)} onClick={on.onCopy}>
                {words.copy}
              </Button>
            )}
            <Button size="compact-xs" variant="default" aria-label={words.deleteOf(id)} onClick={on.onDelete}>
              {mark === 'deleted' ? words.keepStored : words.delete}
            </Button>
          </Group>
        )}
      </div>
      {isOpen && (isPart ? <Large bytes={bytes ?? 0} /> : <DocumentTree value={document} />)}
    </li>
  );
}

function Large({ bytes }: { readonly bytes: number }) {
  return (
    <Text size="sm" c="dimmed" px="md" pb="sm">
      {words.largeLead(sayBytes(bytes))}
    </Text>
  );
}
