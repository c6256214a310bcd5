module github.com/localqueue/localqueue

go 1.26.0
