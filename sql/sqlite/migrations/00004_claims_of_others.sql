-- +goose Up
-- A claim by a program that knows no delivery numbers (the original, or a hand-written UPDATE) takes the next one too, and
-- lets go of a delayed job that has fallen due: without it the history of its end would take the number of an earlier
-- delivery, or none. AFTER UPDATE OF attempts: acks, nacks and heartbeats don't pay for the look.
-- +goose StatementBegin
CREATE TRIGGER messages_claimed AFTER UPDATE OF attempts ON messages
WHEN NEW.attempts > OLD.attempts AND NEW.delivery = OLD.delivery BEGIN
    UPDATE messages SET delivery = max(OLD.delivery, OLD.attempts) + 1, delayed = 0 WHERE id = NEW.id;
END;
-- +goose StatementEnd
-- What such claims have left behind.
UPDATE messages SET delivery = attempts WHERE delivery < attempts;
UPDATE messages SET delayed = 0 WHERE delayed <> 0 AND status <> 0;

-- +goose Down
DROP TRIGGER messages_claimed;
