/** A document as Extended JSON to edit. Nothing runs until its changes are reviewed. */
import { Button, Group, Stack, Text, Textarea } from '@mantine/core';
import { useState } from 'react';
import { Dialog } from '../../../parts/forms/dialog.tsx';
import { documentsText as words } from '../../../texts/documents-text.ts';
import { text } from '../../../texts/text.ts';
import { type Document, documentIn } from './values.ts';

interface EditorProps {
  readonly title: string;
  readonly document: Document;
  readonly onSave: (document: Document) => void;
  readonly onClose: () => void;
}

export function DocumentEditor({ title, document, onSave, onClose }: EditorProps) {
  const [typed, setTyped] = useState(() => JSON.stringify(document, null, 2));
  const [wrong, setWrong] = useState<string | null>(null);
  const save = () => {
    try {
      onSave(documentIn(typed));
    } catch (error) {
      setWrong((error as Error).message);
    }
  };
  return (
    <Dialog opened onClose={onClose} title={title} size="xl">
      <Stack>
        <Text size="sm">{words.editorLead}</Text>
        <Textarea
          aria-label={words.editor}
          data-autofocus
          autosize
          minRows={10}
          maxRows={24}
          spellCheck={false}
          autoCapitalize="none"
          error={wrong}
          styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: '0.8125rem' } }}
          value={typed}
          onChange={({ currentTarget }) => {
            setTyped(currentTarget.value);
            setWrong(null);
          }}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) save();
          }}
        />
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {text.shell.cancel}
          </Button>
          <Button onClick={save}>{words.keep}</Button>
        </Group>
      </Stack>
    </Dialog>
  );
}
