/** Queries that are kept in the cloud with a database: opened, saved under a name, deleted. */
import { BookmarkIcon, TrashIcon } from '@heroicons/react/24/outline';
import { Button, Menu, Text, TextInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { cloud } from '../../../cloud.ts';
import { useCloudForm } from '../../../parts/cloud-form.ts';
import { Confirm, FormModal } from '../../../parts/forms/dialog.tsx';
import { showDone } from '../../../parts/notices.tsx';
import { queriesText as words } from '../../../texts/queries-text.ts';
import classes from '../databases.module.css';
import { savedQuery } from './queries.ts';

interface SavedMenuProps {
  readonly id: string;
  readonly typed: string;
  readonly onChoose: (text: string) => void;
}

export function SavedMenu({ id, typed, onChoose }: SavedMenuProps) {
  const { data: saved = [] } = useQuery(savedQuery(id));
  const [isSaving, setSaving] = useState(false);
  const [gone, setGone] = useState<{ readonly saved_query_id: string; readonly name: string } | null>(null);
  const invalidates = [savedQuery(id)];
  const form = useCloudForm({
    values: { name: '' },
    send: ({ name }) => cloud.saveQuery(id, { name: name.trim(), text: typed }),
    invalidates,
    onDone: ({ name }) => {
      setSaving(false);
      showDone(words.isSaved(name));
    },
  });
  const remove = useMutation({
    mutationFn: (savedQueryId: string) => cloud.deleteSavedQuery(id, savedQueryId),
    meta: { shown: true, invalidates },
    onSuccess: () => setGone(null),
  });
  return (
    <>
      <Menu position="bottom-end" width={420}>
        <Menu.Target>
          <Button variant="default" leftSection={<BookmarkIcon width={18} aria-hidden />}>
            {words.saved}
          </Button>
        </Menu.Target>
        <Menu.Dropdown className={classes.history ?? ''}>
          <Menu.Item
            disabled={typed.trim() === ''}
            onClick={() => {
              form.reset();
              setSaving(true);
            }}
          >
            {words.save}
          </Menu.Item>
          <Menu.Divider />
          {saved.length === 0 && <Menu.Item disabled>{words.savedEmpty}</Menu.Item>}
          {saved.map((one) => (
            <div key={one.saved_query_id} className={classes.savedLine}>
              <Menu.Item onClick={() => onChoose(one.text)}>
                <Text size="sm" truncate>
                  {one.name}
                </Text>
                <Text size="xs" c="dimmed" className="mono" truncate>
                  {one.text.slice(0, 200)}
                </Text>
              </Menu.Item>
              <Menu.Item aria-label={words.deleteSaved(one.name)} onClick={() => setGone(one)}>
                <TrashIcon width={16} aria-hidden />
              </Menu.Item>
            </div>
          ))}
        </Menu.Dropdown>
      </Menu>
      <FormModal
        isOpen={isSaving}
        title={words.saveTitle}
        action={words.saveSubmit}
        form={form}
        isIncomplete={form.values.name.trim() === ''}
        onClose={() => setSaving(false)}
      >
        <TextInput
          data-autofocus
          label={words.saveName}
          description={words.saveLead}
          maxLength={200}
          {...form.text('name')}
        />
      </FormModal>
      <Confirm
        isOpen={gone !== null}
        title={words.deleteSaved(gone?.name ?? '')}
        action={words.deleteSubmit}
        isBusy={remove.isPending}
        error={remove.error}
        onConfirm={() => gone !== null && remove.mutate(gone.saved_query_id)}
        onClose={() => setGone(null)}
      >
        {words.deleteSavedLead}
      </Confirm>
    </>
  );
}
